//! Starts the sampler, listens to it, lets it go.
