"""The trunk: the values that both halves agree on, frozen and without IO."""
