/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes constants fitted to traces as a profile.
 */
#pragma once

#include "import/trace/trace_fit.h"

/* Appends the longhaul.profile/2 document called @name, with the determined constants. */
void lh_trace_fit_write(const LhTraceFit *tuning, const LhSetup *setup, const char *name,
                        const char *source, GString *out);
