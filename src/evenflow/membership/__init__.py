"""What workers, processors and triggerers do beside their work: they register with the control plane, claim and report."""
