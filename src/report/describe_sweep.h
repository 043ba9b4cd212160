/* A sweep for people. */
#pragma once

#include "report/sweep_values.h"

/* Appends it in @format, a table or Markdown: a line for each point, and what is to say of them. */
void lh_describe_sweep(const LhSweep *sweep, LhFormat format, GString *out);
