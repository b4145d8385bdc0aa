"""Transformations of streams, of tables, and of Polars LazyFrames."""

from .mechanisms import make_frame_count as make_frame_count
from .mechanisms import then_frame_count as then_frame_count
from .streams import make_bounded_contributions as make_bounded_contributions
from .streams import make_stream_clamp as make_stream_clamp
from .streams import make_stream_filter as make_stream_filter
from .streams import make_stream_map as make_stream_map
from .streams import then_bounded_contributions as then_bounded_contributions
from .streams import then_stream_clamp as then_stream_clamp
from .streams import then_stream_filter as then_stream_filter
from .streams import then_stream_map as then_stream_map
from .tables import make_distinct_units as make_distinct_units
from .tables import make_distinct_values as make_distinct_values
from .tables import make_group_truncate as make_group_truncate
from .tables import make_per_unit as make_per_unit
from .tables import make_private_join as make_private_join
from .tables import make_public_join as make_public_join
from .tables import make_quantile_scores as make_quantile_scores
from .tables import make_rows_per_unit as make_rows_per_unit
from .tables import make_table_answers as make_table_answers
from .tables import make_table_count as make_table_count
from .tables import make_table_histogram as make_table_histogram
from .tables import make_table_prefixes as make_table_prefixes
from .tables import make_table_select as make_table_select
from .tables import make_table_sum as make_table_sum
from .tables import make_truncate as make_truncate
from .tables import make_where as make_where
from .tables import make_with_columns as make_with_columns
from .tables import then_distinct_units as then_distinct_units
from .tables import then_distinct_values as then_distinct_values
from .tables import then_group_truncate as then_group_truncate
from .tables import then_per_unit as then_per_unit
from .tables import then_private_join as then_private_join
from .tables import then_public_join as then_public_join
from .tables import then_quantile_scores as then_quantile_scores
from .tables import then_rows_per_unit as then_rows_per_unit
from .tables import then_table_answers as then_table_answers
from .tables import then_table_count as then_table_count
from .tables import then_table_histogram as then_table_histogram
from .tables import then_table_prefixes as then_table_prefixes
from .tables import then_table_select as then_table_select
from .tables import then_table_sum as then_table_sum
from .tables import then_truncate as then_truncate
from .tables import then_where as then_where
from .tables import then_with_columns as then_with_columns

__all__ = [name for name in dir() if not name.startswith("_")]
