// The ranking of NeuCo-Bench for a choice of tasks and methods, as stats/ranking.py has it; a test compares the two.
"use strict";
// Q is (tasks, methods), the better the higher; baselines marks methods by 1. All results are arrays.
function rankMethods(q, rule, baselines) {
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  // 1 + the number of strictly smaller values: ties share the better rank.
  const positions = (values) => values.map((value) => 1 + values.filter((other) => other < value).length);
  const quantile = (sorted, share) => {
    const at = share * (sorted.length - 1), low = Math.floor(at);
    return sorted[low] + (at - low) * (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]);
  };
  const spread = (values) => {
    if (rule.weights === "equal" || values.length < 2) { return 0; }
    if (rule.spread === "robust") {
      const sorted = [...values].sort((a, b) => a - b);
      return (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.349;
    }
    const mean = sum(values) / values.length;
    return Math.sqrt(sum(values.map((value) => (value - mean) ** 2)) / values.length);
  };
  const counted = (_, method) => rule.weights !== "no-baselines" || !baselines[method];
  let spreads = q.map((values) => spread(values.filter(counted)));
  if (!(sum(spreads) > 0)) { spreads = spreads.map(() => 1); } // nothing tells the tasks apart: they count the same
  const total = sum(spreads) + rule.ghost;
  const weights = spreads.map((value) => value / total), ranks = q.map((values) => positions(values.map((value) => -value)));
  const weighted = q[0].map((_, method) => sum(weights.map((weight, task) => weight * ranks[task][method])));
  // Sums that are equal on paper differ in the last bits; such ties must stay ties.
  return { ranks, weights, ghost: rule.ghost / total, weighted, final: positions(weighted.map((value) => Math.round(value * 1e10))) };
}
