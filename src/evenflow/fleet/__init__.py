"""What each service of a fleet does beside its work: it registers with the control plane, claims, and sends reports and logs."""
