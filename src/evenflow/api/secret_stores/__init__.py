"""Connections and variables in external stores: only the control plane asks these, so no worker holds their credentials."""
