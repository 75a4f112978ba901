"""The soak test: things of each kind are created and removed by the million, while time and memory must not grow."""
