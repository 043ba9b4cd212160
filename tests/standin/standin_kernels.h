/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the stand-in's kernels, which run from their PTX. */
#pragma once

#include "ptx.h"

/* Total of all kernels since the start. */
const ptx_counts *standin_kernel_counts(void);
