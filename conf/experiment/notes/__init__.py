"""Studies after notes on PCA and ZCA."""
