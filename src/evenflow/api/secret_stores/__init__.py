"""Where connections and variables are kept by others: the control plane asks there, so no worker holds what opens these stores."""
