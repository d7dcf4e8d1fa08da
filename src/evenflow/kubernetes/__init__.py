"""The API of a Kubernetes cluster: where it is, requests with patience, and what there is of a kind, listed and watched."""
