/*
 * Cells of numbers: short in a table, exact in CSV and JSON.
 */
#pragma once

#include "report/table.h"

#include <stdint.h>

/* A share as percent with one decimal; under a heading that says so. */
void lh_cell_percent(LhTable *table, double share);

/* Bytes as MiB, likewise. */
void lh_cell_mib(LhTable *table, double bytes);

/* "1.5 M". */
void lh_cell_count(LhTable *table, uint64_t count);
