/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A figure of published numbers and predictions: a panel for each quantity, a point for each number
 * that is judged, a colour and a shape for each table.
 */
#pragma once

#include "papers/reproduce.h"

/* Draws @tables, LhReproducedTable *, to @path, one that lh_figure_check_path() allows. Tables of
 * which no number is judged are left out. */
bool lh_accuracy_figure_draw(const GPtrArray *tables, const char *path, GError **error);
