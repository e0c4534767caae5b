"""What `${...}` in a config can stand for."""

from omegaconf import OmegaConf

from normbench.command.config import resolvers


def test_powers_of_ten_are_printed_as_they_resolve():
    resolvers.register()
    config = OmegaConf.create({"step_sizes": "${decades:-1,1}"})
    OmegaConf.resolve(config)  # as `--cfg job --resolve` does
    assert config == {"step_sizes": [0.1, 1.0, 10.0]}
