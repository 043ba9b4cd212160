/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure of predicted against measured times: makespans of schedules, and times of kernels.
 */
#pragma once

#include "report/draw/figure.h"
#include "validate/validate.h"

/* Whether there is anything to draw. */
bool lh_validate_figure_has(const GPtrArray *validations);

/* @validations: of LhValidation *; @tolerance is drawn as dashed lines. */
bool lh_validate_figure(const GPtrArray *validations, double tolerance, LhFigureTo to,
                        GError **error);
