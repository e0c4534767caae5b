"""Settings of the wrong kind, beyond what a machine holds, and Hydra's own."""

from pathlib import Path

from tests.mistakes.bench import Case, typed
from tests.mistakes.programs import config_dir

JOBLIB = "hydra/launcher=joblib"
SLURM, LOCAL = "hydra/launcher=slurm", "hydra/launcher=submitit_local"


def one(word: str, *others: str, said: str = "", kind: str = "") -> Case:
    """Return the case of a word that is a mistake, and is named."""
    return Case(kind or word, typed(*others, word), (said or word,))


def folder_is_a_file(folder: Path) -> list[str]:
    (folder / "file").write_text("")
    return [f"folder={folder / 'file'}"]


def folder_below_a_file(folder: Path) -> list[str]:
    (folder / "file").write_text("")
    return [f"folder={folder / 'file' / 'sweep'}"]


# A word that is nearly right, in each place of the command line, and what is meant.
NEARLY = {
    ("normaliser=standard",): "type normalizer=standard",
    ("expermient=textbook/mnist",): "did you mean experiment",
    ("iteration=5",): "did you mean iterations",
    ("rules.tial=0.2",): "did you mean rules.tail",
    ("tracking.url=a",): "did you mean tracking.uri",
    ("normalizer=standrd",): "did you mean standard",
    ("normalizer.rigde=1",): "did you mean normalizer.ridge",
    ("precision=float46",): "did you mean float64",
    ("record=[pionts]",): "did you mean points",
    ("result",): "did you mean results",
    ("start=nul",): "did you mean null",
    ("standard",): "write normalizer=standard",
    ("normalizer:standard",): "write normalizer=standard",
    ("normalizer=standard,", "pca_sphere"): "type normalizer=standard,pca_sphere",
    ("normalizer=standard", "pca_sphere"): "type normalizer=standard,pca_sphere",
    ("normalizer=all",): "type 'normalizer=glob(*)'",
    ("patients.csv",): "type dataset=csv dataset.path=patients.csv dataset.target=-1",
    ("it's.csv",): """type dataset=csv 'dataset.path="it'"'"'s.csv"' dataset.target=-1""",
    ("dataset=csv", "dataset.path=[x].csv"): """'dataset.path="[x].csv"'""",
    ("dataset.test_size=0.3",): "type dataset.test_fraction=0.3",
    ("optimizer.lr=0.1",): "type step_sizes=0.1",
    ("normalizer.eps=1",): "type normalizer.ridge=1",
    ("optimizer.zzz=1",): "there are none: leave it out",
    ("dataset.split_seed=0..6",): "type 'dataset.split_seed=range(0,7)'",
    ("experiment=breast_cancer",): "type experiment=textbook/breast_cancer",
    ("results", "plot"): "type normbench results figure histories",
    ("results", "draw", "melt"): "type normbench results figure melt",
    ("results", "report", "--open"): "open the file that normbench results report prints",
    ("results", "table", "--type", "csv"): "did you mean --format",
    ("-cn", "foo"): "-cn: there is no such flag",
    ("--multrun",): "did you mean --multirun",
    ("packages=[numpyy]",): "there is no package or module numpyy",
    ("seed=1,2", "--cfg", "job"): "--cfg shows the config of one job; give one value",
    ("results", "lst"): "did you mean list",
    ("results", "figure", "histries"): "did you mean histories",
    ("results", "--stroe", "a"): "did you mean --store",
}
GROUPS = ("cost", "dataset", "normalizer", "optimizer", "model", "tracking")
CASES = (
    *(one(f"{group}=null") for group in GROUPS),
    one("cost=softmax,null"),
    one("normalizer=[standard,pca]"),
    one("normalizer=nothing"),
    one("rules=null"),
    one("search=null"),
    one("theory=some", said="theory=some: must be one of auto, full, none"),
    one("figures=[windos]", said="figures=windos: must be one of overview"),
    one("tracking=server", said="tracking.uri=null: the store cannot be had (it is no URI); name"),
    *(one(f"batch={batch}") for batch in ("2.5", "700")),
    one("model.hidden=[0]", "model=mlp", said="1 or more", kind="hidden units"),
    one("model.hidden=5", "model=mlp", said="a list of units", kind="list of units"),
    one("model.normalize=bach", "model=mlp", said="did you mean batch", kind="inside"),
    one("model.activation=step", "model=mlp", said="tanh", kind="activation"),
    one("model.start_scale=-1", "model=mlp", said="0 or more", kind="start scale"),
    one("model.epsilon=-1", "model=mlp", said="0 or more", kind="epsilon"),
    one("start=same_function", "model=mlp", said="does not go with model=mlp"),
    one(
        "start=zeros",
        "model=mlp",
        said="stationary point,: does not go with",
        kind="zero weights",
    ),
    one("batch=1", "model=mlp", "model.normalize=batch", said="needs two points", kind="one point"),
    one("shown_step=3", said="shown_step=3: is not one of step_sizes"),
    one("step_schedule=3", said="passes and a factor", kind="schedule"),
    one("step_schedule=[3,2]", said="below 1", kind="factor of a schedule"),
    one("step_schedule=[3,0.5]", "optimizer=lbfgs", said="has its own", kind="schedule of lbfgs"),
    one("model.affine=solved", "model=mlp", said="model=linear", kind="solved inside"),
    one("model.affine=solved", "model.normalize=batch", said="cost=least_squares", kind="solved"),
    one("model.normalize=layer", said="none, batch", kind="layers of the linear model"),
    one("model.signs=same", "model=mlp", said="free, fixed", kind="signs"),
    one("model.newton_iterations=0", "model=mlp", said="1 or more", kind="Newton's iterations"),
    one("model.affine_step=0", "model=mlp", said="above 0", kind="step of gains"),
    one("model.epsilon=textbok", "model=mlp", said="did you mean textbook", kind="rule of epsilon"),
    one(
        *("model.epsilon=textbook", "model=mlp", "model.normalize=zca"),
        said="use a number",
        kind="textbook's rule of whitening",
    ),
    one(
        "model=mlp",
        "dataset=digits",
        "cost=softmax",
        said="does not fit the targets",
        kind="scores of a network",
    ),
    one("model.statistics=mean", "model=mlp", said="all, batch, running", kind="statistics"),
    one(
        *("model.statistics=running", "model=mlp", "model.normalize=batch"),
        *("optimizer=line_search",),
        said="use optimizer=gradient_descent",
        kind="running statistics of a search",
    ),
    one("start_scale=10", "model=mlp", said="use model.start_scale"),
    one(
        "normalizer.statistics=batch",
        "batch=10",
        "model=mlp",
        said="does not go with model=mlp",
    ),
    one("cost.l2_in=features", "model=mlp", "cost.l2=1", said="does not go with model=mlp"),
    one("optimizer=preconditioned", "model=mlp", said="does not go with model=mlp"),
    one("model=mpl", said="did you mean mlp"),
    one("batch=5", "optimizer=lbfgs", said="need all points", kind="batch of lbfgs"),
    one("search=[1]"),
    one("rules.tail=[1]", said="rules.tail="),
    *(one(f"memory={value}", said="must be a size") for value in ("much", "-1")),
    one("memory=1MiB", said="the program itself takes"),
    *(one(f"checkpoint={value}") for value in ("0", "often")),
    one("checkpoint=true", said="checkpoint=true: must be a finite number"),
    *(one(f"reuse={value}", said="true or false") for value in ("no", "null")),
    *(Case(" ".join(words), typed(*words), (said,)) for words, said in NEARLY.items()),
    Case("a list in two words", typed("step_sizes=[1,", "10]"), ("'step_sizes=[1, 10]'",)),
    Case(
        "a record that does not apply",
        typed("record=[fit,projection]"),
        ("leave fit out",),
    ),
    one("~iterations"),
    one("~cost"),
    one("+typo.key=1"),
    one("typo=1", said="typo: no such setting"),
    one("tracking=local,local", said="tracking"),
    one("experiment=null,textbook/mnist", said="experiment="),
    one("experiment=typo", said="experiment=typo: no such option"),
    one("experiment=../config", said="no such option"),
    one("+experiment=textbook/mnist"),
    one("tracking.artifacts=[1]"),
    one("tracking.artifacts={_target_:os.getcwd}", said="tracking.artifacts="),
    one("hydra.launcher.n_jobs=0", JOBLIB),
    one("hydra.launcher.require=anything", JOBLIB),
    one("hydra.launcher.timeout_min=0", SLURM),
    one("hydra.launcher.mem_gb=1.5", SLURM),
    one("hydra.launcher.jobs_per_task=many", LOCAL),
    one("hydra.launcher.partition='a\nreboot'", SLURM, said="hydra.launcher.partition="),
    one("hydra.launcher.account=--wrap", SLURM),
    one("hydra.launcher.queue=debug", LOCAL),
    one("hydra.launcher.setup=[reboot]", SLURM, said="hydra.launcher.setup"),
    one("+hydra.launcher.python=reboot", LOCAL, said="hydra.launcher.python"),
    one("hydra.launcher={_target_:os.getcwd}", said="hydra.launcher"),
    one("folder=a%j", LOCAL),
    one("hydra.mode=RUN"),
    one("hydra.job.chdir=true"),
    one("hydra/launcher=submitit_slurm"),
    one("hydra.launcher._target_=os.getcwd"),
    one("hydra/sweeper=optuna"),
    one("hydra.sweeper._target_=os.getcwd"),
    one("hydra.output_subdir=.hydra"),
    one("folder=null"),
    one("folder=[1]", said="folder="),
    one("hydra.sweep.dir='~/a'", said="folder=~/a: write the home folder in full"),
    one("--shell-completion", said="--shell-completion : takes one word"),
    one("install=sh", "--shell-completion", said="install=sh: takes one word"),
    one("query=bash", "--shell-completion", said="query=bash: is what a shell asks"),
    one("hydra.sweep.subdir=x"),
    Case("no YAML", config_dir("hydra: [1"), ("is no YAML",)),
    Case("a mode in a file", config_dir("hydra: {mode: RUN}"), ("hydra.mode=RUN",)),
    Case("no row in the table", config_dir("quota: 3"), ("quota: no such setting",)),
    Case("no such rule", config_dir("rules: {most: 3}"), ("rules.most: no such setting",)),
    one("cost.l2_in=features,weights", said="cost.l2_in=weights: must be one of"),
    Case("chdir in a file", config_dir("hydra: {job: {chdir: true}}"), ("hydra.job.chdir=true",)),
    Case(
        "a sweep of Hydra's", config_dir("hydra: {sweeper: {params: {hydra.x: 1}}}"), ("hydra.x",)
    ),
    Case("no folder of options", typed("--config-dir", "none"), ("--config-dir none: is no",)),
    one("--config-name=other", said="--config-name"),
    one("--run"),
    one("--zzz"),
    Case("--cfg nothing", typed("--cfg", "nothing"), ("--cfg",)),
    Case("results --zzz", typed("results", "--zzz"), ("--zzz",)),
    one("iterations=99999999999999999999999", said="iterations="),
    one(f"iterations={'9' * 400}", said="iterations=", kind="iterations beyond floats"),
    one(f"iterations={'9' * 5000}", said="iterations=", kind="iterations beyond digits"),
    one("starts=99999999999999", "start=normal"),
    one("seed=range(0,1e15)", said="more than 100,000 jobs"),
    one("seed=range(0,10,0)", said="seed="),
    one("seed=interval(0,1)"),
    one("start=[1,2]", said="start=(1, 2): has 2 weights; it takes 1 x 31"),
    Case(
        "more components than features",
        typed("normalizer=pca", "normalizer.components=31"),
        ("components=31", "30 features"),
    ),
    Case(
        "a scheme that refuses the points",
        typed("normalizer=power", "normalizer.method=box-cox"),
        ("Power", "strictly positive"),
    ),
    Case(
        "more features than memory holds",
        typed(
            "normalizer=chain",
            "normalizer.schemes=[{identity:{_target_:sklearn.preprocessing.PolynomialFeatures,"
            "degree:7}}]",
        ),
        ("normalizer",),
    ),
    one("iterations=${iterations}", said="iterations"),
    one("iterations=${none}", said="none"),
    one("step_sizes=${decades:2}", said="step_sizes"),
    one("step_sizes={decades:-2,1}", said="'step_sizes=${decades:-2,1}'"),
    one("step_sizes=${per_scheme:3}", said="step_sizes"),
    one("iterations=" + "[" * 2000, said="iterations=", kind="brackets without end"),
    one("packages=[1]"),
    Case("a file as the folder", folder_is_a_file, ("folder=",)),
    Case("a folder below a file", folder_below_a_file, ("folder=",)),
    one(f"folder={'a' * 300}", said="File name too long", kind="300 letters of a name"),
    one("folder=/proc/none/sweep"),
    Case("no text in a folder's name", typed("folder='a\0b'"), ("folder=",)),
    *(
        Case(f"stdout is full: {words}", typed(*words), ("No space left",), "/dev/full")
        for words in (("iterations=2",), ("results", "--help"))
    ),
)
