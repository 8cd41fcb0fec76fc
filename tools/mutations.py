"""Bugs to seed in copies of the core, and the experiments whose claims should notice them (``mutation_suite.py`` runs them).

A mutation replaces one piece of text, which must occur exactly once in its file. ``tries`` are the experiments that run
through that piece, the likeliest to notice it first and otherwise the cheapest first. ``test`` is the test that notices a bug
where no claim does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """A seeded bug: in ``file`` (below ``src/gyrostat``), ``old`` becomes ``new``; ``sentence`` says what is then wrong."""

    name: str
    file: str
    old: str
    new: str
    sentence: str
    tries: tuple[str, ...] = ()
    test: str = ""

    def apply(self, source: str) -> str:
        """The source with the bug; an error if the text does not occur exactly once."""
        found = source.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: the text to replace occurs {found} times in {self.file}, not once.")
        return source.replace(self.old, self.new)


XU_SGD = ("xu2024/fig3", "xu2024/thm2", "xu2024/phases", "xu2024/fig4", "xu2024/window", "studies/amplify")
XU_POOLED = ("xu2024/thm3", "xu2024/fig6", "xu2024/fig1", "xu2024/thm8")
XU_FIXED = ("xu2024/fig5-replacement", "xu2024/thm6")
XIONG_FACTORS = ("xiong2024/thm4.1", "xiong2024/fig1.1", "xiong2024/imbalance", "xiong2024/thm3.1")
XIONG_SENSING = ("xiong2024/fig1.2", "xiong2024/thm4.2", "xiong2024/figI1", "xiong2024/figI4", "xiong2024/figI2")
WANG_RUNS = ("wang2023/conventions", "studies/fold", "wang2023/fig1", "wang2023/fig2", "wang2023/pytorch-start")

MUTATIONS = (
    # measurements
    Mutation(
        "fresh-noise-louder",
        "measurements/fresh_gaussian.py",
        "gradient = (span.along[0] - across * inner(unit, W)) / m * unit + across / m * W",
        "gradient = (span.along[0] - across * inner(unit, W)) / m * unit + 1.1 * across / m * W",
        "The noise of a fresh batch is 10 % too large.",
        ("xu2024/thm2", "studies/amplify", "xu2024/fig6"),
    ),
    Mutation(
        "fresh-energy-halved",
        "measurements/fresh_gaussian.py",
        "span = _group(z, norm[None], chi_square(squares, m), self.noise)",
        "span = _group(z, norm[None], chi_square(squares, m) / 2, self.noise)",
        "A fresh batch sees half of the residual.",
        XU_SGD,
    ),
    Mutation(
        "pooled-counts-deterministic",
        "measurements/fresh_gaussian.py",
        "counts = multinomial(counting, self.num_samples, jnp.asarray(law.weights))",
        "counts = self.num_samples * jnp.asarray(law.weights)",
        "A mixed batch has the same number of samples of every environment at every step.",
        ("xu2024/laws", "xu2024/fig6", "xu2024/thm3", "xu2024/fig1", "xu2024/thm8"),
    ),
    Mutation(
        "pooled-first-environment-twice",
        "measurements/fresh_gaussian.py",
        "_coefficients(base, law.at(index).sigma), chi2, self.noise)",
        "_coefficients(base, law.at(index // 2).sigma), chi2, self.noise)",
        "A mixed batch of two environments holds samples of the first one only.",
        XU_POOLED,
    ),
    Mutation(
        "symmetric-gaussian-unit-off-diagonal",
        "measurements/fresh_gaussian.py",
        "    return draws[:extra], scene.space.element(draws[extra:])",
        "    W = scene.space.element(draws[extra:])\n"
        "    root = 2**0.5\n"
        "    return draws[:extra], W * (root - (root - 1) * jnp.eye(len(W))) if W.ndim == 2 else W",
        "Entries off the diagonal of a fresh symmetric measurement have variance 1 instead of 1/2.",
        ("xu2024/thm2", "studies/amplify", "xu2024/fig6"),
    ),
    Mutation(
        "fixed-chi-of-all-rows",
        "measurements/fixed_gaussian.py",
        "chi = jnp.sqrt(chi_square(squares, jnp.maximum(m - n, 1.0)))",
        "chi = jnp.sqrt(chi_square(squares, m))",
        "Every new direction of a fixed design has m degrees of freedom: chi_m for chi_(m-k+1).",
        test="tests/measurements/test_exact_laws.py::test_fixed_design_answers_adaptive_questions",
    ),
    Mutation(
        "fixed-design-without-noise",
        "measurements/fixed_gaussian.py",
        "row = jnp.where(is_new, z - q * (q @ z) + chi * q, 0.0)",
        "row = jnp.where(is_new, chi * q, 0.0)",
        "A fixed design answers without noise across the direction that is asked for.",
        XU_FIXED,
    ),
    Mutation(
        "truncation-ignored",
        "measurements/rank_one.py",
        "error = jnp.where(predicted <= self.truncation, predicted - y, 0.0)",
        "error = predicted - y",
        "Samples above the truncation of Algorithm 4 are kept.",
        test="tests/measurements/test_exact_laws.py::test_truncated_rank_one_batch",
    ),
    Mutation(
        "rank-one-mean-of-predictions",
        "measurements/rank_one.py",
        "jnp.mean((predicted - y) ** 2), y.mean())",
        "jnp.mean((predicted - y) ** 2), predicted.mean())",
        "The shrinkage of Algorithm 4 is told the mean prediction instead of the mean response.",
        test="tests/measurements/test_exact_laws.py::test_truncated_rank_one_batch",
    ),
    Mutation(
        "design-without-label-noise",
        "measurements/dense.py",
        "return DesignRows(kept, self.noise * normal(noises, count * self.num_samples).reshape(count, -1))",
        "return DesignRows(kept, 0 * self.noise * normal(noises, count * self.num_samples).reshape(count, -1))",
        "Responses of a design have no noise.",
        test="tests/measurements/test_exact_laws.py::test_a_batch_has_the_law_of_measurements_written_out",
    ),
    Mutation(
        "gram-halved",
        "measurements/dense.py",
        "gram = (transposed @ X / m).astype(rows.matrices.dtype)",
        "gram = (transposed @ X / (2 * m)).astype(rows.matrices.dtype)",
        "The Gram matrix of a design is divided by 2 m.",
        XIONG_SENSING,
    ),
    Mutation(
        "rows-gradient-doubled",
        "measurements/dense.py",
        "gradient = (error.astype(X.dtype) @ X).astype(b.dtype) / error.size",
        "gradient = 2 * (error.astype(X.dtype) @ X).astype(b.dtype) / error.size",
        "The gradient from the rows of a design is twice too large.",
        ("xiong2024/lemmasG", *XIONG_SENSING),
    ),
    Mutation(
        "entries-never-reshuffled",
        "measurements/entries.py",
        "order = change_if_needed(at == 0, reordered,",
        "order = change_if_needed((at == 0) & jnp.all(state.orders[index] == 0), reordered,",
        "The first random order of the observed entries is used for every pass.",
        ("wang2023/balance", "wang2023/fig1"),
    ),
    Mutation(
        "last-entry-never-drawn",
        "measurements/entries.py",
        "return (uniform(key, size) * self.count).astype(jnp.int32)",
        "return (uniform(key, size) * (self.count - 1)).astype(jnp.int32)",
        "The last observed entry is never drawn.",
        WANG_RUNS,
    ),
    Mutation(
        "entries-summed",
        "measurements/entries.py",
        "weighted = e * (error / error.size)[:, None]",
        "weighted = e * error[:, None]",
        "A batch of entries is summed instead of averaged.",
        ("studies/fold", *WANG_RUNS),
    ),
    Mutation(
        "identity-mix-one-environment",
        "measurements/identity.py",
        "return _reading(scene.product - scene.environments.mean_target), state",
        "return _reading(scene.product - scene.environments.invariant), state",
        "A mixed batch of infinitely many measurements sees the invariant part alone.",
        ("xu2024/laws", "xu2024/fig6", "xu2024/thm3"),
    ),
    # algorithms: batches, update rules, events, initialisation, schedules
    Mutation(
        "environments-never-reshuffled",
        "algorithms/batches.py",
        "permutation = jax.random.permutation(fold_in(run_key, step // law.count), law.count)",
        "permutation = jax.random.permutation(fold_in(run_key, 0 * step), law.count)",
        "The first random order of the environments is used for every pass.",
        test="tests/algorithms/test_batches.py::test_shuffled_visits_each_environment_once_per_pass",
    ),
    Mutation(
        "cyclic-stays-for-two-steps",
        "algorithms/batches.py",
        "return law.at(step % law.count)",
        "return law.at((step // 2) % law.count)",
        "The cyclic order stays for two steps in every environment.",
        test="tests/engine/test_conformance.py::test_conforms",
    ),
    Mutation(
        "full-batch-unweighted-sum",
        "algorithms/batches.py",
        "return _weighted_sum(jnp.asarray(law.weights), readings), state",
        "return _weighted_sum(jnp.ones(law.count), readings), state",
        "A full batch is the sum over environments instead of the mean.",
        ("xu2024/laws", "xu2024/thm6", "xu2024/indefinite"),
    ),
    Mutation(
        "amplify-all-not-mean",
        "algorithms/batches.py",
        "amplified = _weighted_sum((1 + kappa) * is_chosen - kappa * jnp.asarray(law.weights), readings)",
        "amplified = _weighted_sum((1 + kappa) * is_chosen - kappa * is_chosen, readings)",
        "Amplification has no effect.",
        ("studies/amplify",),
    ),
    Mutation(
        "ridge-doubled",
        "algorithms/update_rules.py",
        '"weight_decay": (2.0, 1.0)',
        '"weight_decay": (2.0, 2.0)',
        "The ridge of the weight-decay convention is twice too large.",
        WANG_RUNS,
    ),
    Mutation(
        "ridge-forgotten",
        "algorithms/update_rules.py",
        "keep, eta = 1 - decay * step_size * ridge, gain * step_size\n        return tuple(",
        "keep, eta = 1.0, gain * step_size\n        return tuple(",
        "A gradient step forgets the ridge.",
        ("wang2023/balance", *WANG_RUNS),
    ),
    Mutation(
        "layers-in-sequence",
        "algorithms/update_rules.py",
        "return tuple(keep * p - eta * g for p, g in zip(params, self.gradients(model, params, reading), strict=True))",
        "moved = list(params)\n"
        "        for i, p in enumerate(params):\n"
        "            moved[i] = keep * p - eta * self.gradients(model, tuple(moved), reading)[i]\n"
        "        return tuple(moved)",
        "Layers are updated one after the other, each from the new values of those before it.",
        ("wang2023/appendixD", "wang2023/balance", "xiong2024/imbalance", "xiong2024/thm4.1", *WANG_RUNS),
    ),
    Mutation(
        "preconditioned-by-itself",
        "algorithms/update_rules.py",
        "return tuple(map(solved, model.pullback(params, reading.gradient), model.partners(params)))",
        "return tuple(map(solved, model.pullback(params, reading.gradient), params))",
        "ScaledGD divides by the Gram matrix of the factor itself instead of its partner.",
        ("studies/peers",),
    ),
    Mutation(
        "momentum-damped",
        "algorithms/update_rules.py",
        "memory = tuple(self.beta * m + g for m",
        "memory = tuple(self.beta * m + (1 - self.beta) * g for m",
        "Momentum averages the gradients instead of adding them up.",
        ("studies/momentum",),
    ),
    Mutation(
        "adam-without-root",
        "algorithms/update_rules.py",
        "-mean_scale * m / (jnp.sqrt(square_scale * v) + self.epsilon)",
        "-mean_scale * m / (1 + 0 * v)",
        "Adam does not divide by the root of the mean square.",
        ("studies/momentum",),
    ),
    Mutation(
        "shrinkage-from-updated",
        "algorithms/events.py",
        "size = sum(jnp.sum(p * p) for p in moment.before)",
        "size = sum(jnp.sum(p * p) for p in moment.after)",
        "The shrinkage of Algorithm 4 uses the updated U.",
        test="tests/engine/test_conformance.py::test_conforms",
    ),
    Mutation(
        "imbalance-step-loses-product",
        "algorithms/events.py",
        "return beta * A, (G @ Vt.T) * (s / beta)",
        "return beta * A, (G @ Vt.T) / beta",
        "The imbalance step does not keep the product.",
        ("xiong2024/fig1.2", "xiong2024/thm5.1"),
    ),
    Mutation(
        "imbalance-step-half-beta",
        "algorithms/events.py",
        "return beta * A, (G @ Vt.T) * (s / beta)",
        "return beta / 2 * A, (G @ Vt.T) * (2 * s / beta)",
        "The imbalance step is made with half of beta.",
        ("xiong2024/thm5.1", "xiong2024/fig1.2", "studies/peers"),
    ),
    Mutation(
        "start-doubled",
        "algorithms/starts.py",
        "self.scale * (jnp.eye(*shape, dtype=float)",
        "2 * self.scale * (jnp.eye(*shape, dtype=float)",
        "The scaled identity at the start is twice too large.",
        ("xu2024/thm2", "xu2024/phases", "xu2024/fig3", "xu2024/thm3", "xu2024/fig4", "xu2024/fig3-readings"),
    ),
    Mutation(
        "symmetric-start-of-any-width",
        "algorithms/starts.py",
        "return self.scale / shape[-1] ** 0.5 * jax.random.normal(key, shape, dtype=float)",
        "return self.scale * jax.random.normal(key, shape, dtype=float)",
        "The Gaussian start of one factor is not divided by the root of its width.",
        ("xiong2024/thm3.1", "xiong2024/lemmasB", "xiong2024/fig1.1"),
    ),
    Mutation(
        "balanced-start",
        "algorithms/starts.py",
        "self.scale / self.ratio / G.shape[0] ** 0.5 * G",
        "self.scale / G.shape[0] ** 0.5 * G",
        "Both factors start with the same scale.",
        ("xiong2024/fig1.1", "xiong2024/imbalance", *XIONG_SENSING),
    ),
    Mutation(
        "fan-in-of-rows",
        "algorithms/starts.py",
        "return self.scale / shape[-1] ** 0.5 * jax.random.uniform",
        "return self.scale / shape[0] ** 0.5 * jax.random.uniform",
        "The uniform start of layers counts rows instead of columns.",
        ("wang2023/pytorch-start", "wang2023/fig1", "wang2023/fig2"),
    ),
    Mutation(
        "gaussian-layers-tenth",
        "algorithms/starts.py",
        "return self.scale / shape[-1] ** 0.5 * jax.random.normal(key, shape, dtype=float)",
        "return 0.1 * self.scale / shape[-1] ** 0.5 * jax.random.normal(key, shape, dtype=float)",
        "The Gaussian start of layers is ten times too small.",
        ("wang2023/pytorch-start", "wang2023/thm3.2"),
    ),
    Mutation(
        "no-warm-up",
        "algorithms/schedules.py",
        "return jnp.where(step < self.num_steps, jnp.minimum(self.step_size, eta), eta), ridge",
        "return eta, ridge",
        "The warm-up is left out.",
        ("wang2023/pytorch-start", "wang2023/fig1", "wang2023/fig4"),
    ),
    Mutation(
        "annealing-never",
        "algorithms/schedules.py",
        "return _pick((step >= self.at).astype(int), [self.high(step), self.low(step)])",
        "return self.high(step)",
        "The annealed schedule never changes.",
        ("wang2023/fig3", "wang2023/conventions", "studies/fold"),
    ),
    Mutation(
        "one-period",
        "algorithms/schedules.py",
        "within = jnp.maximum(jnp.asarray(step) - self.start, 0) % ends[-1]",
        "within = jnp.clip(jnp.asarray(step) - self.start, 0, ends[-1] - 1)",
        "The periodic schedule does not repeat.",
        ("wang2023/fig4",),
    ),
    # models, environments
    Mutation(
        "symmetric-gradient-doubled",
        "models/symmetric.py",
        "tuple(sign * self.gradient_factor * times(gradient, U)",
        "tuple(2 * sign * self.gradient_factor * times(gradient, U)",
        "The gradient of U U^T is twice the printed one.",
        XU_SGD,
    ),
    Mutation(
        "indefinite-same-sign",
        "models/symmetric.py",
        "tuple(sign * self.gradient_factor * times(gradient, U)",
        "tuple(self.gradient_factor * times(gradient, U)",
        "V of U U^T - V V^T moves in the direction of U.",
        ("xu2024/indefinite",),
    ),
    Mutation(
        "diagonal-same-sign",
        "models/diagonal.py",
        "-self.gradient_factor * gradient * v",
        "self.gradient_factor * gradient * v",
        "v of u * u - v * v moves in the direction of u.",
        test="tests/models/test_models.py::test_product_and_pullback_equal_the_twin",
    ),
    Mutation(
        "second-factor-half-speed",
        "models/asymmetric.py",
        "return times(gradient, G), times(gradient.T, F)",
        "return times(gradient, G), times(gradient.T, F) / 2",
        "The second factor of F G^T moves at half speed.",
        XIONG_FACTORS,
    ),
    Mutation(
        "two-point-wider",
        "environments/laws.py",
        "super().__init__(self.centre + self.spread * np.array(signs))",
        "super().__init__(self.centre + 1.25 * self.spread * np.array(signs))",
        "The spread of a two-point law is 25 % too large, in runs and in theory.",
        ("xu2024/fig2", "xu2024/fig3", "xu2024/fig3-readings", "xu2024/fig4"),
    ),
    Mutation(
        "environments-unequally-likely",
        "environments/laws.py",
        "return self.at(jnp.minimum(jnp.sum(uniform(key, 1) >= edges), self.count - 1))",
        "return self.at(jnp.minimum(jnp.sum(uniform(key, 1) ** 1.5 >= edges), self.count - 1))",
        "The first of two environments is drawn with probability 0.63 instead of 0.5.",
        ("xu2024/fig3", "xu2024/fig4", "studies/predictor", "xu2024/thm2"),
    ),
    Mutation(
        "features-not-scaled",
        "environments/random_environments.py",
        "features = jax.random.normal(one, (d, self.rank), dtype=float) / np.sqrt(d)",
        "features = jax.random.normal(one, (d, self.rank), dtype=float) / np.sqrt(2 * d)",
        "The invariant features of Example 1 have half of their variance.",
        test="tests/environments/test_environments.py::test_feature_environments_reproduce_the_sum_of_features",
    ),
    # engine
    Mutation(
        "same-noise-every-step",
        "engine/one_run.py",
        "key, space = fold_in(self.step_key, t), model.space(environments.shape)",
        "key, space = fold_in(self.step_key, 0 * t), model.space(environments.shape)",
        "Every step draws the same batch.",
        XU_SGD,
    ),
    Mutation(
        "same-run-for-every-seed",
        "engine/program.py",
        "key = fold_in(jax.random.key(seed), number)",
        "key = fold_in(jax.random.key(seed), 0 * number)",
        "All runs of a call are the same run.",
        ("wang2023/fig2", "xu2024/fig3", "wang2023/fig1"),
    ),
    Mutation(
        "diverges-at-three",
        "engine/one_run.py",
        "LIMIT = 1e8",
        "LIMIT = 3.0",
        "A run counts as diverged as soon as the norm of its parameters passes 3.",
        ("wang2023/conventions", "xu2024/fig3", "xiong2024/fig1.1"),
    ),
    Mutation(
        "step-size-of-the-first-step",
        "engine/one_run.py",
        "eta, ridge = algorithm.schedule(t)",
        "eta, ridge = algorithm.schedule(0 * t)",
        "All steps use the step size and the ridge of the first one.",
        WANG_RUNS,
    ),
    # diagnostics
    Mutation(
        "error-in-operator-norm",
        "diagnostics/signal_and_loss.py",
        "    return frobenius_norm(parts(snapshot)[2])",
        "    return jnp.linalg.norm(parts(snapshot)[2], 2)",
        "||E||_F is recorded as the operator norm.",
        ("xu2024/phases", "xu2024/thm2", "xu2024/window"),
    ),
    Mutation(
        "signal-share-of-the-sum",
        "diagnostics/signal_and_loss.py",
        "return frobenius_norm(environments.signal_block(snapshot.product)) / frobenius_norm(environments.invariant_values)",
        "return frobenius_norm(environments.signal_block(snapshot.product)) / jnp.sum(environments.invariant_values)",
        "The learnt share of several invariant directions is divided by their sum.",
        ("xu2024/fig1", "xu2024/thm8", "xu2024/thm7", "xu2024/indefinite"),
    ),
    Mutation(
        "distance-to-the-mean",
        "diagnostics/signal_and_loss.py",
        "return frobenius_norm(snapshot.product - snapshot.environments.mean_target)",
        "return frobenius_norm(snapshot.product - snapshot.environments.invariant)",
        "The distance to the mean target is that to the invariant part.",
        ("xu2024/thm3", "xu2024/thm6"),
    ),
    Mutation(
        "row-norms-not-squared",
        "diagnostics/factors.py",
        "return jnp.sum(F * F, axis=1)",
        "return jnp.sqrt(jnp.sum(F * F, axis=1))",
        "Squared norms of rows are recorded without the square.",
        ("xiong2024/thm3.1",),
    ),
    Mutation(
        "imbalance-sum",
        "diagnostics/factors.py",
        "    return F.T @ F - G.T @ G\n",
        "    return F.T @ F + G.T @ G\n",
        "The imbalance is recorded with a plus.",
        ("xiong2024/imbalance", "xiong2024/fig1.1"),
    ),
    Mutation(
        "cost-exponent",
        "diagnostics/layers.py",
        "values_of(jnp.asarray(matrix)) ** (2 / L))",
        "values_of(jnp.asarray(matrix)) ** (1 / L))",
        "The representation cost has the exponent 1/L.",
        ("wang2023/balance", "wang2023/thm3.1"),
    ),
    Mutation(
        "jumps-at-any-dip",
        "diagnostics/rank_jumps.py",
        "last = above.shape[-1] - np.argmax(above[..., ::-1], axis=-1)",
        "last = np.where((~above).any(axis=-1), np.argmax(~above, axis=-1), above.shape[-1])",
        "A run has jumped at its first dip, also when it comes back.",
        ("wang2023/balance", "wang2023/fig1", "wang2023/fig2"),
    ),
    Mutation(
        "approximate-rank-linear",
        "diagnostics/layers.py",
        "return share * (2 - share)",
        "return share",
        "The smooth count of Wang 2023 is linear.",
        ("wang2023/appendixEF", "wang2023/thm3.2", "wang2023/balance"),
    ),
    Mutation(
        "isometry-halved",
        "diagnostics/isometry.py",
        "best = jnp.maximum(best, sign * (jnp.sum(M * GM) - 1))",
        "best = jnp.maximum(best, 0.5 * sign * (jnp.sum(M * GM) - 1))",
        "The isometry constant is reported at half of its size.",
        ("xiong2024/lemmasG", "xiong2024/thm4.2"),
    ),
    Mutation(
        "late-rate-halved",
        "diagnostics/rate_from_curvature.py",
        "-2 * math.log(worst) if worst > 0",
        "-math.log(worst) if worst > 0",
        "The late rate from the curvature is that of the error, not of the loss.",
        ("xiong2024/fig1.2", "xiong2024/thm4.2"),
    ),
    # theory
    Mutation(
        "lyapunov-without-mean",
        "theory/ours/transition.py",
        "np.log(np.maximum(np.abs(1 + eta * xi), tiny))",
        "np.log(np.maximum(np.abs(1 + eta * (xi - 1)), tiny))",
        "The Lyapunov exponent leaves out the mean of the spurious part.",
        ("studies/predictor", "xu2024/lemma7"),
    ),
    Mutation(
        "critical-spread-half-time",
        "theory/ours/transition.py",
        "gap = (1 + eta * mean) ** 2 - math.exp(2 * room / num_steps)",
        "gap = (1 + eta * mean) ** 2 - math.exp(room / num_steps)",
        "The critical spread is that of half of the room to grow.",
        ("xu2024/fig3", "studies/amplify", "xu2024/fig3-readings"),
    ),
    Mutation(
        "error-law-across",
        "theory/ours/final_error.py",
        "across = eta / (2 - eta) * max(dimension - r1 - r2, 0) * r1",
        "across = eta / (1 - eta) * max(dimension - r1 - r2, 0) * r1",
        "The error law has twice the variance across the signal.",
        ("xu2024/thm2", "studies/amplify", "xu2024/window"),
    ),
    Mutation(
        "tail-constant",
        "theory/xiong2024.py",
        "return (width - rank) / (4 * step_size * np.asarray(steps, dtype=float)) ** 2",
        "return (width - rank) / (2 * step_size * np.asarray(steps, dtype=float)) ** 2",
        "The tail of one factor has the constant 1 / (2 eta t)^2.",
        ("xiong2024/fig1.1",),
    ),
    Mutation(
        "effective-step-squared",
        "theory/ours/transition.py",
        "return float(eta / (1 - share))",
        "return float(eta / (1 - share**2))",
        "The effective step of momentum divides by 1 - beta^2.",
        ("studies/momentum",),
    ),
    Mutation(
        "increment-sign",
        "theory/xiong2024.py",
        "return step_size**2 * (right.T @ right - left.T @ left)",
        "return step_size**2 * (left.T @ left - right.T @ right)",
        "The change of the imbalance in one step has the other sign.",
        ("xiong2024/imbalance",),
    ),
    Mutation(
        "calibration-linear",
        "theory/xu2024/proof_sequences.py",
        "R[t + 1] = (1 - step_size * R[t] ** 2 + step_size) * R[t]",
        "R[t + 1] = (1 - step_size * R[t] + step_size) * R[t]",
        "The calibration sequence (25) saturates linearly.",
        ("xu2024/lemma5", "xu2024/fig3", "xu2024/phases"),
    ),
    Mutation(
        "fold-half-ridge",
        "theory/wang2023/landscape.py",
        "return fit / 6 + lam * L * _powers(v, L)",
        "return fit / 6 + lam * L * _powers(v, L) / 2",
        "The fold is computed with half of the ridge.",
        ("studies/fold", "wang2023/conventions", "wang2023/fig3"),
    ),
    Mutation(
        "turning-rate-one-factor",
        "theory/wang2023/landscape.py",
        "total += c**2 * ((u[..., i, 1] * vt[..., 0, j]) ** 2 + (u[..., i, 0] * vt[..., 1, j]) ** 2) / 2",
        "total += c**2 * (u[..., i, 1] * vt[..., 0, j]) ** 2 / 2",
        "The turning of the first singular pair is counted in one of the two outer layers.",
        ("wang2023/fig1",),
    ),
)
