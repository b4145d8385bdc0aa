"""Public partitions of the data, parallel composition over them, and quotas for analysts."""
