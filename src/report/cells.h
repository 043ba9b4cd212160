/*
 * Cells of numbers: short in a table, exact in CSV and JSON.
 */
#pragma once

#include "report/table.h"

#include <stdint.h>

/* A share as percent with one decimal; under a heading that says so. */
void lh_cell_percent(LhTable *table, double share);

/* @bytes / @ranks as MiB; exact where @ranks is 1. */
void lh_cell_mib(LhTable *table, LhWide bytes, uint32_t ranks);

/* "1,500,000". */
void lh_cell_count(LhTable *table, LhWide count);
