/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure of published values and predictions: a panel per quantity, a point per judged value, a
 * colour and a shape per table.
 */
#pragma once

#include "papers/reproduce.h"

/* Draws @tables, LhReproducedTable *, to @path, which lh_figure_check_path() accepts. Tables
 * without judged values are left out. */
bool lh_accuracy_figure_draw(const GPtrArray *tables, const char *path, GError **error);
