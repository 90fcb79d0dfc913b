"""PyTorch modules as targets, through torchax: logits and gradients as PyTorch's own, and every refusal.

Skipped where torchax and PyTorch are not installed: the extra `torch` is in no world of CI.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.errors import InputError
from ewsg.modules import cross_entropy, function_of, parameters, restore

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ewsg[torch]'")
    try:
        pytest.importorskip("torchax", reason="torchax is not installed: pip install 'ewsg[torch]'")
    except AttributeError as error:
        pytest.skip(f"this torchax does not work with PyTorch {torch.__version__}: {error}", allow_module_level=True)

pytestmark = pytest.mark.float32
nn = torch.nn
IMAGES = np.random.default_rng(0).normal(size=(12, 6, 6)).astype(np.float32)
FLAT = IMAGES.reshape(12, 36)
LABELS = (np.arange(12) % 3).astype(np.int32)


class Frozen(nn.Module):
    """A weight that does not require gradients, a buffer, and one matrix under two names."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(36, 36, bias=False)
        self.second = nn.Linear(36, 36, bias=False)
        self.second.weight = self.first.weight
        self.head = nn.Linear(36, 3)
        self.head.bias.requires_grad_(False)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        return self.head(torch.tanh(self.second(torch.tanh(self.first(x)) * self.scale)))


def mlp():
    return nn.Sequential(nn.Linear(36, 5), nn.ReLU(), nn.Linear(5, 3))


def cnn():
    layers = nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.GroupNorm(2, 18)
    return nn.Sequential(*layers, nn.Dropout(0.5), nn.Linear(18, 3)).eval()


CASES = {"mlp": (mlp, FLAT), "cnn": (cnn, IMAGES[:, None]), "frozen": (Frozen, FLAT)}


@pytest.mark.parametrize("case", CASES)
def test_logits_and_forces_are_those_of_pytorch(case):
    torch.manual_seed(1)
    make, inputs = CASES[case]
    module = make()
    params = parameters(module)
    assert set(params) == {name for name, value in module.named_parameters() if value.requires_grad}
    theirs = module(torch.from_numpy(inputs))
    ours = jax.vmap(function_of(module), (None, 0))(params, inputs)
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-5, atol=1e-6)
    loss = nn.functional.cross_entropy(theirs, torch.from_numpy(LABELS).long(), reduction="sum")
    trained = {name: value for name, value in module.named_parameters() if value.requires_grad}
    (loss + sum((value**2).sum() for value in trained.values()) / 2).backward()
    target = ewsg.Target.from_module(module, cross_entropy, (inputs, LABELS))
    force = jax.jit(target.full_force)(params)
    for name, value in trained.items():
        np.testing.assert_allclose(force[name], -value.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


def test_sampled_predicted_and_put_back():
    torch.manual_seed(1)
    module = mlp()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    target = ewsg.Target.from_module(module, cross_entropy, (FLAT, LABELS))
    settings = {"num_chains": 2, "num_steps": 20, "thin": 5, "progress": False}
    run = ewsg.sample(target, ewsg.Uniform(4), ewsg.BAOAB(step_size=0.01, friction=5.0), **settings)
    assert run.ok.all()
    each = []
    for chain in range(2):
        for draw in range(2):
            filled = restore(module, {name: leaf[chain, draw] for name, leaf in run.draws.items()})
            assert type(filled) is nn.Sequential
            each.append(torch.softmax(filled(torch.from_numpy(FLAT)), 1).detach().numpy())
    np.testing.assert_allclose(run.predict(module, FLAT).probabilities, np.mean(each, 0), rtol=1e-4)
    for name, value in module.state_dict().items():
        np.testing.assert_array_equal(value, before[name])


def test_a_module_that_is_changed_later_leaves_the_target_as_it_was():
    module = cnn()
    call, params = function_of(module), parameters(module)
    expected = call(params, IMAGES[0][None])
    module.train()
    np.testing.assert_array_equal(call(params, IMAGES[0][None]), expected)


class Random(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(36, 3)

    def forward(self, x):
        return self.linear(x) + torch.rand(3, device=x.device)


class FunctionalDropout(Random):
    def forward(self, x):
        return nn.functional.dropout(self.linear(x), 0.5, training=True)


REFUSED = {
    "batch norm": (lambda: nn.Sequential(nn.Linear(36, 3), nn.BatchNorm1d(3)), r"batch statistics \(BatchNorm1d\)"),
    "batch norm, eval": (lambda: nn.Sequential(nn.Linear(36, 3), nn.BatchNorm1d(3)).eval(), "batch statistics"),
    "dropout": (lambda: nn.Sequential(nn.Linear(36, 3), nn.Dropout(0.3)), r"dropout.*module\.eval\(\)"),
    "random numbers": (Random, "draws random numbers"),
    "functional dropout": (FunctionalDropout, "draws random numbers"),
    "no parameters": (nn.Flatten, "Flatten has no parameters"),
    "wrong input": (lambda: nn.Linear(35, 3), r"module\(input\) of one datum failed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_posterior_is_refused(case):
    make, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as error:
        ewsg.Target.from_module(make(), cross_entropy, (FLAT, LABELS))
    assert "\n" not in str(error.value)


def test_a_module_is_not_a_start():
    target = ewsg.Target(lambda p, x: -jnp.sum((p - x) ** 2), None, FLAT)
    with pytest.raises(InputError, match=r"init is a module \(Sequential\): .*ewsg\.modules\.parameters\(module\)"):
        ewsg.sample(target, ewsg.Uniform(4), ewsg.BAOAB(step_size=0.01, friction=5.0), init=mlp(), num_steps=4)
