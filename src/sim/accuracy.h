/*
 * How far off constants, and the model itself, may be: defined here and nowhere else. What the
 * numbers rest on: docs/model.md, "How far apart is apart".
 */
#pragma once

#include "sim/device.h"

/* What predictions are off by even where every constant is known: of the ten times of
 * docs/accuracy.md that nothing was fitted to, eight are within it. */
#define LH_MODEL_ERROR 0.05

/* What collectives among the GPUs of a node are off by whose size or number of GPUs nobody
 * measured: of those of docs/accuracy.md, each left out in turn, four in five are within it. */
#define LH_COLLECTIVE_ERROR 0.2

/* The same of what a formula says of a collective of so many bytes, as nccl-tests prints them: the
 * shorter, the less is known. Of those of two nodes in docs/accuracy.md. */
double lh_modelled_error(double bytes);

/* A constant of @provenance (LhProvenance) is good to this share of itself, in (0, 1). */
double lh_provenance_error(int provenance);

/* The same of a fit: its worst residual, if it is known and @provenance is no guess. */
double lh_fit_error(int provenance, const LhFitResiduals *residuals);
