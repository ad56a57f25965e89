"""A prediction as a widget. All it knows comes from the prediction and the session."""

from __future__ import annotations

import ipywidgets as widgets

from labs.kit.predictions import Prediction
from labs.kit.session import Session


def prediction_view(prediction: Prediction, session: Session) -> widgets.VBox:
    """Print the prediction as text, and return it as a box for the last line of a cell."""
    print(f"{prediction.topic}: {prediction.direction}, about {prediction.ratio:g} of the baseline")
    return widgets.VBox([])
