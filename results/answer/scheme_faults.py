"""State the faults of fitted schemes: features lost or not scaled, directions held by a ridge."""

import pandas as pd

from normbench import names
from normbench.results.answer.ranking import names_or_count
from normbench.results.compare.merging import every_job
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import Sentence, agree, make_sentence


def remarks(sweep: Sweep, experiment: str) -> list[str]:
    """Return sentences on what the schemes of an experiment silently did not do.

    Of the splits of a scheme, the one where most features or directions are concerned counts.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        The sentences; none where every scheme did what its name says.
    """
    jobs = every_job(sweep, experiment)
    templates = ("lost_features", "unscaled_features")
    sentences = [
        sentence
        for template, (metric, tag) in zip(templates, names.FEATURE_FAULTS)
        for sentence in _feature_sentences(_worst_jobs(jobs, metric), template, metric, tag)
    ]
    return [fault.text for fault in [*sentences, *_ridge_sentences(jobs)]]


def _worst_jobs(jobs: pd.DataFrame, metric: names.Metric) -> pd.DataFrame:
    """Return for each scheme the job with the largest value of a metric, where it is above 0."""
    if metric.column not in jobs:
        return jobs.iloc[:0]
    faulty_jobs = jobs[jobs[metric.column] > 0]
    return faulty_jobs.loc[faulty_jobs.groupby("label", sort=False)[metric.column].idxmax()]


def _feature_sentences(
    jobs: pd.DataFrame, template: str, metric: names.Metric, tag: names.Tag
) -> list[Sentence]:
    """Return a sentence for each set of features that schemes have a fault with.

    Args:
        jobs: One job a scheme that has the fault.
        template: The name of the sentence.
        metric: The number of the features.
        tag: The names of the first of them.
    """
    keys = [names.FEATURES_VARYING.column, metric.column, tag.column]
    sentences = []
    for (varying, count, features), rows in jobs.groupby(keys, sort=False) if len(jobs) else ():
        verbs = agree(count, "them", "they", "vary", "stay") | agree(len(rows), "leave")
        fields = {"schemes": names_or_count([*rows["label"]]), "features_named": features}
        fields |= {"count": count, "all": varying, **verbs, **agree(varying, "features")}
        sentences.append(make_sentence(template, **fields))
    return sentences


def _ridge_sentences(jobs: pd.DataFrame) -> list[Sentence]:
    """Return the sentence on the schemes whose ridge holds directions down, if there are any."""
    held = _worst_jobs(jobs, names.RIDGE_TOUCHED)
    if held.empty:
        return []
    # Written as 1e-7; several ridges from the smallest to the largest.
    ridges = sorted({*held[names.RIDGE.column]})
    ridge_texts = [
        f"{ridge:.2g}".replace("e-0", "e-") for ridge in dict.fromkeys((ridges[0], ridges[-1]))
    ]
    setting = names.setting("normalizer.ridge")
    is_option = setting in held and held[setting].notna().all()  # not so inside a chain
    worst = held.loc[held[names.RIDGE_TOUCHED.column].idxmax()]
    touched, live = worst[names.RIDGE_TOUCHED.column], worst[names.LIVE_DIRECTIONS.column]
    return [
        make_sentence(
            "ridge_matters",
            ridge=" to ".join(ridge_texts),
            schemes=names_or_count([*held["label"]]),
            most="up to " if held[names.RIDGE_TOUCHED.column].nunique() > 1 else "",
            touched=touched,
            live=live,
            setting="normalizer.ridge" if is_option else "ridge",
            **agree(live, "directions"),
            **agree(touched, "are"),
        )
    ]
