"""What worker and processor share: user code in processes of its own, and being known to the control plane."""
