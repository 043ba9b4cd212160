/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs of documents of a setup's step.
 */
#pragma once

#include "scenario/setup.h"

/* Sets the packs of the step's micro-batches, given or drawn. One pack for all is part of the mask
 * already. */
bool lh_setup_packs(LhSetup *setup, GError **error);
