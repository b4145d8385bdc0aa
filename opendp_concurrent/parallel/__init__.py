"""Data in parts: public partitions, parallel composition, and quotas for analysts."""
