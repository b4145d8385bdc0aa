"""Training by rounds: noisy sums of clipped gradients over sampled batches."""
