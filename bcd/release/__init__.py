"""Making releases: keys, manifests and signatures. What a node makes of them is core's to say."""
