"""What a `_target_` may name: a config is data, and no program."""

import sys

import pytest

from normbench.choices import allowing, build, canonical, locate
from normbench.datasets import UserError

FOREIGN = (
    "os.system",
    "subprocess.run",
    "builtins.eval",
    "posix.system",
    "pickle.loads",
    "joblib.load",
    "antigravity.fly",
    "normbench.command.sweep.subprocess",
    "normbench.command.sweep.shutil",
    "normbench.recording.writer.suppress",
    "sklearn.utils.parallel.joblib",
    "sklearn.datasets._base.gzip",
    "eval",
    "",
    None,
)


@pytest.mark.parametrize("target", FOREIGN)
@pytest.mark.parametrize("group", ["cost", "normalizer", "dataset", "optimizer"])
def test_code_from_elsewhere_is_refused_unread(group, target):
    with pytest.raises(UserError, match=f"{group}._target_=") as caught:
        locate(group, target)
    assert len(str(caught.value).splitlines()) == 1
    assert "antigravity" not in sys.modules


def test_a_scheme_within_a_chain_is_no_way_around():
    links = [{"standard": {"_target_": "os.getcwd"}}]
    for schemes in (links, [{"chain": {"schemes": links}}]):
        with pytest.raises(UserError, match=r"normalizer\._target_=os\.getcwd: is of"):
            build("normalizer", {"_target_": "normbench.choices.chain", "schemes": schemes})


FORMER = {
    "costs.softmax": "normbench.costs.softmax",
    "datasets.bundled.iris": "normbench.datasets.bundled.iris",
    "optimizers.adam": "normbench.optimizers.adam",
    "harness.normalizers.PCASphere": "normbench.normalizers.PCASphere",
    "harness.choices.chain": "normbench.choices.chain",
}


@pytest.mark.parametrize(("former", "present"), FORMER.items())
def test_former_spellings_are_accepted_and_told_in_their_present_one(former, present):
    assert locate("cost", former) is locate("cost", present)
    nested = {"schemes": [{"standard": {"_target_": former}}], "_target_": former}
    assert canonical(nested) == {
        "schemes": [{"standard": {"_target_": present}}],
        "_target_": present,
    }
    own = former.split(".")[0]
    assert canonical(nested, [own]) == nested  # a package of the user's that has the same name


def test_a_package_that_the_user_names_is_allowed_as_long_as_it_is_named():
    with allowing(["fractions"]):
        assert locate("cost", "fractions.Fraction").__name__ == "Fraction"
    with pytest.raises(UserError, match=r"add packages=\[fractions\]"):
        locate("cost", "fractions.Fraction")


@pytest.mark.parametrize("packages", ["os", 3, [1], ["a.b"], [""], None, {"a": 1, "b c": 2}])
def test_packages_are_a_list_of_names(packages):
    with pytest.raises(UserError, match="packages="), allowing(packages):
        pass
