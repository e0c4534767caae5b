"""Find the columns of a user's table by their names or positions."""

from typing import Any

from normbench.datasets.values import UserError, check_list, did_you_mean, spell_setting

MAX_LISTED_NAMES = 12  # column names that a message lists


def find_roles(names: list[str], target: Any, drop: Any) -> tuple[list[int], int | None]:
    """Return the positions of a table's feature columns, and that of its target.

    Args:
        names: The names of the table's columns, in their order.
        target: The name or position of the target column; None without one.
        drop: The names or positions of columns to leave out.

    Returns:
        The positions of the features, increasing: all columns but the target and the dropped ones.
        The position of the target, or None without one.

    Raises:
        UserError: There is no such column, or the target is dropped, too.
    """
    dropped = find_positions(names, "dataset.drop", drop)
    target_position = None if target is None else find_position(names, "dataset.target", target)
    if target_position in dropped:
        raise UserError(f"dataset.target={target}: stands in dataset.drop too; leave it in one")
    return [n for n in range(len(names)) if n not in (target_position, *dropped)], target_position


def find_positions(names: list[str], option: str, columns: Any) -> list[int]:
    """Return the positions of a list of columns, in the order of the list.

    Args:
        names: The names of the table's columns.
        option: The setting that lists columns, for errors.
        columns: Its value, names or positions.

    Raises:
        UserError: The value is no list, or there is no such column.
    """
    return [find_position(names, option, column) for column in list_columns(option, columns)]


def list_columns(option: str, columns: Any) -> list[Any]:
    """Return the value of a setting that lists columns as a list.

    Args:
        option: The setting, for the error.
        columns: Its value, names or positions.

    Raises:
        UserError: The value is no list.
    """
    # The list as the user would write it, without the name of the setting.
    example = spell_setting(option, ["id", "date"]).partition("=")[2]
    rule = f"a list of columns, such as {example}"
    if isinstance(columns, str) and columns:
        rule += f"; write {spell_setting(option, [columns], shell=True)}"
    return check_list(option, columns, rule)


def find_position(names: list[str], option: str, column: Any) -> int:
    """Return the position, from 0, of a column that is given by its name or position.

    Args:
        names: The names of the table's columns.
        option: The setting that gives the column, for errors.
        column: A name, or a position; -1 is the last.

    Raises:
        UserError: There is no such column, or several have the name.
    """
    refuse_duplicate_name(option, column, names)
    # A text is a name even where it is a number, such as '2020'; a boolean is no position.
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int) and not isinstance(column, bool):
        if -len(names) <= column < len(names):
            return column % len(names)  # -1 becomes the position of the last
        raise UserError(
            f"{spell_setting(option, column)}: there are {len(names)} columns, at positions 0 to "
            f"{len(names) - 1} (-1 is the last)"
        )
    listed_names = ", ".join(names[:MAX_LISTED_NAMES]) + (
        ", ..." if len(names) > MAX_LISTED_NAMES else ""
    )
    raise UserError(
        f"{spell_setting(option, column)}: no such column; give a name of {listed_names}, or a "
        f"position such as -1 (the last){did_you_mean(column, names)}"
    )


def refuse_duplicate_name(option: str, column: Any, names: list[str]) -> None:
    """Raise `UserError` for a column name that several columns have; positions pass.

    Args:
        option: The setting that gives the column, for the error.
        column: A name or position.
        names: The names of the table's columns.
    """
    same_name_positions = [n for n, name in enumerate(names) if name == column]
    if len(same_name_positions) > 1:
        raise UserError(
            f"{spell_setting(option, column)}: is the name of {len(same_name_positions)} columns, "
            f"at positions {', '.join(map(str, same_name_positions[:MAX_LISTED_NAMES]))}; give the "
            f"position of one, and leave out the others with {spell_setting('dataset.drop')}"
        )
