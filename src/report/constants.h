/*
 * Where the constants of a simulation come from.
 */
#pragma once

#include "plan/setup.h"
#include "report/table.h"

/* One line: how far the constants of the cluster can be trusted, and those that were used. */
void lh_describe_trust(const LhSetup *setup, LhProvenance weakest, GString *out);

/* All of them, with their sources; caller frees. */
LhTable *lh_describe_constants(const LhSetup *setup);
