"""The soak: kinds of things come and go by the million, and neither time nor memory may grow with what is gone."""
