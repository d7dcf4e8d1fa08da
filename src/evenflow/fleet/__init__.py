"""What services outside the control plane share: registering with it, claiming work, and sending it reports and logs."""
