/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published names of models.
 */
#pragma once

/* The model of models/ that a published name is ("org/Name-8B-Instruct"), without who published it
 * and what it was tuned for. Caller frees; NULL: none. */
char *lh_config_model_of(const char *published);
