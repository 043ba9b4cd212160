/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants that traces may determine, and their places in the simulator.
 */
#pragma once

#include "import/trace/trace_fit.h"

/* Constant @index of @t. */
LhTraceFitted *lh_trace_fit_constant(const LhTraceFit *t, guint index);

/* Appends to @t the curves of traced kernels and the links of tiers that messages crossed, with
 * their current values. A kernel without a curve gets one. */
void lh_trace_fit_find(LhTraceFit *t, LhSetup *setup, const LhTraceAlignment *match);

/* Sets the value of a constant in @setup for the next simulation. */
void lh_trace_fit_set(LhSetup *setup, const LhTraceFitted *c, double value);

/* Curve of a constant, or link class of a tier; borrowed. */
LhKernelRate *lh_trace_fit_curve(const LhSetup *setup, const LhTraceFitted *c);
LhLinkClass *lh_trace_fit_link(LhTopology *topology, int tier);
