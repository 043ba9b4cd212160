/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step turns on to need less memory, in addition to the defaults of its framework and what
 * its scenario gives: as changes of a setup, as options of longhaul, and in the framework's words.
 */
#pragma once

#include "model/framework_remedies.h"
#include "scenario/step/setup_step.h"

#define LH_REMEDIES_ALL_LAYERS UINT16_MAX

/* All zero: nothing. Choices are stored plus 1. */
typedef struct {
    uint8_t loss;    /* 1 + LhLoss */
    uint8_t tiled;   /* 1: the MLP is tiled, auto */
    uint8_t modules; /* bits 1 << LhRecomputeModule: they are recomputed (selective) */
    uint8_t method;  /* 1 + LhRecomputeMethod: layers are recomputed */
    uint16_t layers; /* of the method */
    uint16_t offload;
    uint8_t moments, params, grads; /* 1 + LhExpAvg, LhMainParams, LhDtype */
} LhRemedies;

bool lh_remedies_any(const LhRemedies *r);
bool lh_remedies_equal(const LhRemedies *a, const LhRemedies *b);

/* Adds what @more turns on, which replaces what it contradicts. */
void lh_remedies_add(LhRemedies *r, const LhRemedies *more);

/* Turns them on in @step, which is as its scenario says. */
void lh_remedies_apply(const LhRemedies *r, LhSetupStep *step);

/* The policy that results from @checkpoint. */
LhCheckpoint lh_remedies_checkpoint(const LhRemedies *r, LhCheckpoint checkpoint);

/* Turns them on in a scenario. */
void lh_remedies_replace(const LhRemedies *r, LhScenario *scenario);

/* The one for @option alone; false if it is not turned on. */
bool lh_remedies_part(const LhRemedies *r, LhRemedyOption option, LhRemedies *part);

/* The value of @option as text; NULL if it is not turned on. Caller frees. */
char *lh_remedies_value(const LhRemedies *r, LhRemedyOption option);

/* As options: "--loss fused --cpu-offloading-num-layers all"; "" for none. Caller frees. */
char *lh_remedies_options(const LhRemedies *r);

/* For people: "loss fused, offload of all layers"; "" for none. Caller frees. */
char *lh_remedies_text(const LhRemedies *r);

/* In the words of @framework, separated by "; "; options that it has no words for as options of
 * longhaul. Caller frees. */
char *lh_remedies_words(const LhRemedies *r, const LhFramework *framework);

/* Reads what lh_remedies_options() prints; false if @text is something else. */
bool lh_remedies_parse(const char *text, LhRemedies *r);
