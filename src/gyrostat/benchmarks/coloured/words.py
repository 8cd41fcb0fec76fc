"""The words of the page of the map that no run changes."""

SETTING = """\
- MNIST, Fashion-MNIST (`make map-data` fetches both; 14 x 14 pixels) and scikit-learn's digits. The label is
  whether the class is at least 5; {noise} of the labels in training and validation are wrong, as in coloured MNIST.
  The picture is red or green, and the colour agrees with the label with probability {high} in one environment and
  {low} in the other. In pooled data the colour helps a little; between environments its effect changes sign. Test
  labels are right, and the test colour is *reversed*.
- *Linear*: w . x. *Diagonal*: (u * u - v * v) . x. *Quadratic*: a sum of signed squares (w_j . x)^2. *Rectified*: a
  . relu(W x), 40 units. These four see principal components of the grey picture ({components}) and the two inks,
  and start ten times smaller than PyTorch's layers. *Rectified on pictures* sees both colour channels pixel by
  pixel; *convolutional* has two layers of 3 x 3 filters.
- {steps} steps of {batch} rows; all methods see the same number of rows. *Pooled*: half of each batch from each
  environment. *One environment*: the batches of `EnvironmentBatchSampler(order="cyclic")`. *Amplified*: the same
  batches, `AmplifiedHeterogeneity`. *V-REx*, *IRMv1*, *GroupDRO* and *Fish* see both environments in every step.
  *No colour*: pooled, with every picture in grey, also in the test; this is what the shape alone gives.
- For every method the step size ({sizes}) and the strength (three values for those that
  have one) are chosen together by the accuracy in the worse of the two training environments on validation rows,
  which neither training nor test sees. Rows for training, validation and test: {rows}. All methods are judged with
  running averages of their weights ({average} of the past kept).
- {seeds} seeds, which change splits, colourings and starts. `make map` makes the page (tens of minutes of one
  core); what has been made is kept.
- The order of environments was chosen after a look at results: amplified steps in independent order gained less on the
  digits than in turn, so "in turn" became the order of the map. All three orders are reported.
- The step sizes of networks on pictures were a tenth of these at first, and the convolutional network had half of the
  steps: nearly every method chose the largest step, and the convolutional network learnt little. Both were run
  again with the sizes and steps of all others."""

USE = """\
## How to use it

```python
import torch
from gyrostat.torch import AmplifiedHeterogeneity, EnvironmentBatchSampler, environment_report

generator = torch.Generator().manual_seed(0)
x = torch.randn(400, 3, generator=generator)
environments = [i % 2 for i in range(400)]
sign = 1 - 2 * torch.tensor(environments)
data = torch.utils.data.TensorDataset(x, x[:, 0] + sign * x[:, 2], torch.tensor(environments))
model = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


def loss(model, batch):
    return 0.5 * ((model(batch[0]).squeeze(1) - batch[1]) ** 2).mean()


sampler = EnvironmentBatchSampler(environments, 50, order="cyclic")
optimizer = AmplifiedHeterogeneity(torch.optim.SGD(model.parameters(), lr=0.05), environments)
for epoch in range(20):
    for batch in torch.utils.data.DataLoader(data, batch_sampler=sampler):
        optimizer.zero_grad()
        loss(model, batch).backward()
        optimizer.step(batch[2][0])
deployed = optimizer.averaged(model)
whole = {e: [values[e::2] for values in data.tensors] for e in (0, 1)}
print(environment_report(deployed, loss, whole).text)
```

In JAX, `gs.amplified_heterogeneity(optax.sgd(0.05), num_environments=2)` is an optax optimiser whose `update` takes
`environment=`, and `state.averaged` are the parameters to deploy."""

WHY = """\
## Why: what multiplies, what adds

In the quadratic and in the diagonal network the weight of a colour is multiplied at every step, in the quadratic
one by `1 + 2 eta (c_e - b)`. Here c_e is the part of the correlation of colour and label in the environment of the
batch that the shape does not explain, and b is what the colour already contributes. With pooled batches the weight
settles where the mean of c_e is explained. Batches of one environment multiply it by two factors in turn, and it
settles where their *product* is 1. That weight is smaller, and zero if the steps are large enough. This is the
Lyapunov rule of `theory.critical_spread`; `examples/coloured_digits.py` draws it over a plane of step sizes and
spreads in an ordinary PyTorch loop (1200 runs, half an hour; both arms of its picture have the same step size,
unlike those of the tables above).

![The plane of step sizes and spreads](images/coloured-digits.png)

In the linear and in the rectified network the weight of a colour is moved by eta times a correlation, times the
output weight of the unit. Steps of two environments *add up*, and a pooled batch makes their sum, so to first order
nothing is gained. With large steps, and with amplified ones, terms of second order count, because the second of two
steps sees the gradient at the weights that the first one has moved. They cancel where the curvature is the same in
both environments and everywhere; otherwise they move the weights to where the gradients agree. This is our
interpretation; the tables show that it works, not why.

An amplified step needs one gradient, that of its batch; the gradients of the other environments are remembered. The
order matters. If environments are visited in turn, their steps undo each other at once. If they are drawn at
random, the steps make a random walk, which costs the rectified network half of the gain. For a weight that is only
multiplied, the opposite is true: with random environments it shrinks at the rate eta^2 (1 + kappa)^2 / 2 times the
variance of c_e, and in turn at about eta^2 (1 + kappa) / 2 times it, because an old gradient makes up for most of a
new one (a test of `AmplifiedHeterogeneity` has the exact rates). A larger kappa then has the same effect."""

LEFT_OUT = """\
## What was left out, and why

- Fish with momentum and Adam: its inner steps are plain SGD by definition. The squared loss on Fashion-MNIST, and
  other losses and optimisers than cross-entropy and SGD for networks on pictures: time.
- The convolutional network is trained on MNIST only, and with the middle strength of a method, because of its cost.
- Steps above the largest of the lists: several choices lie there.
- Pictures of 28 x 28 pixels, more than two environments, and deep networks: not tried. Nothing here says how they
  behave."""
