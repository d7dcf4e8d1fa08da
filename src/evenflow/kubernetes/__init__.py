"""The API of a Kubernetes cluster: its address, requests with retries, and the objects of a kind, listed and watched."""
