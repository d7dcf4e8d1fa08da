"""What services outside the control plane share: being known to it, claiming work, and bringing it reports and logs."""
