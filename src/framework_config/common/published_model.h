/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds models by their published name.
 */
#pragma once

/* The model of models/ with a published name ("org/Name-8B-Instruct"); organisation and tuning
 * suffixes are ignored. Caller frees; NULL: unknown. */
char *lh_config_model_of(const char *published);
