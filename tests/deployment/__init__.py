"""The image, compose.yaml and the manifests in packages/."""
