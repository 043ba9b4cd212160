/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stand-in's kernels did, where they are run from their PTX.
 */
#pragma once

#include "ptx.h"

/* All that were run since the start, together. */
const ptx_counts *standin_kernel_counts(void);
