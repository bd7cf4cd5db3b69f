// The figures in the format that the benchmark reads.

/** Returns the figures of a run. */
export function figures({ jobs, tookMs, adds }, delays) {
  const sorted = Float64Array.from(adds).sort();
  const starts = Float64Array.from(delays).sort();
  return {
    jobs,
    jobs_per_s: Math.round((jobs / tookMs) * 1_000),
    p50_ms: at(sorted, 0.5),
    p99_ms: at(sorted, 0.99),
    ...(starts.length > 0 && { start_p50_ms: at(starts, 0.5), start_p99_ms: at(starts, 0.99) }),
  };
}

function at(sorted, quantile) {
  const index = Math.round((sorted.length - 1) * quantile);
  return Math.round((sorted[index] ?? 0) * 1_000) / 1_000;
}
