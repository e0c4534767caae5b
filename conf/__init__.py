"""The choices and settings, as Hydra reads them: a folder a choice, a file an option."""
