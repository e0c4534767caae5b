"""Read a Parquet file into memory, once the size of its decoded columns is known."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets import column_names, text
from normbench.datasets.values import FLOAT64_BYTES, UserError, refuse_larger, spell_setting

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

OBJECT_BYTES = 64  # of a Python object beside its content: a word, a date
# Of the memory, for words: a character is up to 4 bytes as a Python object, and words are copied;
# 1/12 was measured for text with one character beyond Unicode's first 65,536.
WORDS_SHARE = 1 / 16
WORD_REMEDY = "leave columns of words out with dataset.drop, or keep fewer points"
COLUMN_REMEDY = "name another column, or write its numbers as columns"


def read_table(file: Path, target: Any, drop: Any) -> "pd.DataFrame":
    """Return a Parquet file as a frame; dropped columns are not read, and hold only gaps.

    So the positions of columns stay those in the file. An index that pandas has stored in the file
    is no column.

    Args:
        file: The file.
        target: The name or position of the target column, or None.
        drop: The names or positions of dropped columns.

    Raises:
        UserError: A column is missing, holds lists or records, or the columns would take too much
            memory. This is found before they are decoded.
    """
    import pandas as pd
    import pyarrow.parquet as pq

    setting = f"dataset.path={file}"
    with pq.ParquetFile(file) as opened:
        rows, count = opened.metadata.num_rows, opened.metadata.num_columns
        text.refuse_columns(file, count)
        remedy = "leave dataset.in_blocks out, and it is read by row groups"
        refuse_larger(setting, FLOAT64_BYTES * rows * count, remedy)
        schema = opened.schema_arrow
        names = find_column_names(schema)
        feature_positions, target_position = column_names.find_roles(names, target, drop)
        # Columns are read by name: one that shares its name with a used column is read, too.
        used_names = {names[n] for n in (*feature_positions, target_position) if n is not None}
        dropped = [n for n, name in enumerate(names) if name not in used_names]
        dropped_names = {names[n] for n in dropped}
        fields = [field for field in schema if field.name not in dropped_names]
        target_name = None if target_position is None else names[target_position]
        for field in fields:
            if field.name == target_name:
                refuse_nested(f"dataset.target={target}", field, COLUMN_REMEDY)
            left_out = spell_setting("dataset.drop", [*drop, field.name], shell=True)
            refuse_nested(setting, field, f"leave it out with {left_out}")
        # The memory of the decoded columns that the first check did not count: objects, and bytes
        # of a fixed length.
        object_count = sum(not is_number(field.type) for field in fields)
        entry_bytes = OBJECT_BYTES * object_count + sum(_fixed_bytes(field) for field in fields)
        refuse_larger(setting, rows * entry_bytes, WORD_REMEDY)
        refuse_large_words(setting, file, fields)
        # pyarrow reads `a.b`, too, where `a` is asked for: dropped columns are taken out again.
        table = opened.read([field.name for field in fields])
        table = table.select(
            [n for n, name in enumerate(table.column_names) if name not in dropped_names]
        )
    frame = table.to_pandas()
    if not dropped:
        return frame
    gaps = pd.DataFrame(np.nan, frame.index, [names[n] for n in dropped])
    used = [n for n, name in enumerate(names) if name in used_names]
    # The argsort puts the columns back into the order of the file.
    return pd.concat([frame, gaps], axis=1).iloc[:, np.argsort([*used, *dropped])]


def find_column_names(schema: "pa.Schema") -> list[str]:
    """Return the names of the columns that pandas gives a frame of the file, index left out."""
    return [str(name) for name in schema.empty_table().to_pandas().columns]


def is_number(arrow_type: "pa.DataType") -> bool:
    """Return whether a column's entries are integers, floats or booleans."""
    from pyarrow import types

    is_kind = (types.is_integer, types.is_floating, types.is_boolean)
    return any(is_type(arrow_type) for is_type in is_kind)


def refuse_nested(setting: str, field: "pa.Field", remedy: str) -> None:
    """Raise `UserError` for a column whose entries are lists or records.

    Args:
        setting: The setting to which the error is attributed, as `name=value`.
        field: The column's name and type.
        remedy: What the user can do, the end of the message.
    """
    from pyarrow import types

    if types.is_nested(getattr(field.type, "storage_type", field.type)):
        raise UserError(
            f"{setting}: column {field.name!r} holds lists or records ({str(field.type)[:80]}); "
            f"an entry must be one number or word; {remedy}"
        )


def refuse_large_words(setting: str, file: Path, fields: "Sequence[pa.Field]") -> None:
    """Raise `UserError` for columns of words that take too much memory once decoded.

    The bytes of the words are counted before the columns are decoded, by row groups that hold each
    distinct word once: a file of a few bytes may stand for more words than memory holds.

    Args:
        setting: The setting to which the error is attributed, as `name=value`.
        file: The file.
        fields: The columns to be decoded; those that do not hold words are ignored.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    names = {field.name for field in fields if _is_of_words(field.type)}
    if not names:
        return
    with pq.ParquetFile(file, read_dictionary=sorted(names)) as opened:
        groups = [opened.metadata.row_group(n) for n in range(opened.metadata.num_row_groups)]
        chunks = [group.column(n) for group in groups for n in range(group.num_columns)]
        # First what the file says, without decoding; then the words, repeated ones included.
        unpacked_bytes = sum(c.total_uncompressed_size for c in chunks if c.path_in_schema in names)
        refuse_larger(setting, unpacked_bytes, WORD_REMEDY, WORDS_SHARE)
        word_bytes = 0
        for number in range(len(groups)):
            group_table = opened.read_row_group(number, sorted(names))
            for array in (array for column in group_table.columns for array in column.chunks):
                # The length of each distinct word, once for each of its entries; a gap has none.
                lengths = pc.binary_length(array.dictionary).take(array.indices)
                word_bytes += pc.sum(lengths).as_py() or 0
            # After each row group, so that a file far too large is refused early.
            refuse_larger(setting, word_bytes, WORD_REMEDY, WORDS_SHARE)


def _is_of_words(arrow_type: "pa.DataType") -> bool:
    """Return whether a column's entries are text or bytes of any length.

    Each distinct entry may be stored once, in a dictionary: then the type of these counts.
    """
    from pyarrow import types

    value_type = arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type
    return any(
        is_type(value_type)
        for is_type in (
            types.is_string,
            types.is_large_string,
            types.is_string_view,
            types.is_binary,
            types.is_large_binary,
            types.is_binary_view,
        )
    )


def _fixed_bytes(field: "pa.Field") -> int:
    """Return the bytes of an entry of a column of bytes of a fixed length; 0 for other columns."""
    from pyarrow import types

    return field.type.byte_width if types.is_fixed_size_binary(field.type) else 0
