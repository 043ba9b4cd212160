/* SPDX-License-Identifier: Apache-2.0 */
#include "step/muon/muon_params.h"

#include <stddef.h>

const char *const lh_optimizer_names[] = { "adam", "muon", NULL };
const char *const lh_muon_tp_mode_names[] = { "duplicated", "blockwise", NULL };
const char *const lh_muon_scale_mode_names[] = { "spectral", "unit_rms_norm", "shape_scaling",
                                                 NULL };
const char *const lh_muon_coefficient_names[] = { "quintic", "simple", "polar_express", NULL };
