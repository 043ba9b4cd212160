/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constants that traces may determine, and where the simulator has them.
 */
#pragma once

#include "import/trace/trace_fit.h"

/* The one at @index of those of @t. */
LhTraceFitted *lh_trace_fit_constant(const LhTraceFit *t, guint index);

/* The curves of kernels that were seen, and the links of tiers that messages crossed: appended to
 * those of @t, with the values that they have. A kernel that has no curve gets one. */
void lh_trace_fit_find(LhTraceFit *t, LhSetup *setup, const LhTraceAlignment *match);

/* Puts a value of a constant into @setup, for the next simulation. */
void lh_trace_fit_set(LhSetup *setup, const LhTraceFitted *c, double value);

/* The curve of a constant, or the link of a tier; borrowed. */
LhKernelRate *lh_trace_fit_curve(const LhSetup *setup, const LhTraceFitted *c);
LhLinkClass *lh_trace_fit_link(LhTopology *topology, int tier);
