"""The suite ``tables`` on small sizes: every record is there, and ratings are compared on the same cells."""

from __future__ import annotations

import numpy as np

from benchmarks.tables import ratings, suite
from benchmarks.tables.mixed_units import imputed

SMALL = ratings.RatingsSizes(users=300, items=80, ratings=6000, rank=2)


def test_a_small_suite_has_every_record():
    sizes = suite.TablesSizes(draws=1, fits=1, large=(3000, 3, 3), ratings=SMALL, tables=("wine",))
    found = {record.id: record for record in suite.run(lambda text: None, sizes).records}
    assert found["tables/wine-error"].meets and found["tables/wine-coverage"].ours > 0.5
    assert found["tables/in-parts-difference"].ours < 1e-12
    assert found["tables/sensing-shared-without-intercept"].ours == found["tables/quadratic-steps"].ours == 0
    assert len(found) == 12


def test_ratings_are_hidden_and_predicted():
    shown, hidden = ratings.simulated(SMALL)
    pairs = {*zip(shown.users, shown.items, strict=True)} & {*zip(hidden.users, hidden.items, strict=True)}
    assert not pairs and set(np.unique(shown.values)) <= set(np.arange(1, 5.5, 0.5))
    predicted = ratings.by_us(shown, hidden, SMALL)
    assert np.mean((predicted - hidden.values) ** 2) < np.var(hidden.values)


def test_means_are_one_in_column_deviations():
    assert 0.8 < imputed("wine", 0).means < 1.2
