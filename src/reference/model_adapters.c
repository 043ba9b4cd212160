/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/model_adapters.h"

#include "reference/model_noise.h"

#include <glib.h>

static LhMathProduct
product_of_adapter(const LhAdapter *adapter, const LhModelTensor *w)
{
    return (LhMathProduct){ adapter->rows, w->rows, w->columns, adapter->threads };
}

static double *
pass_on(const LhAdapter *adapter, const LhModelTensor *w, const double *x)
{
    const LhMathProduct p = product_of_adapter(adapter, w);
    double *y = g_new0(double, adapter->rows * w->columns);

    lh_math_product(&p, x, w->value, y);
    lh_model_disturb(adapter->model, y, adapter->rows, w->columns);
    return y;
}

static void
pass_back(const LhAdapter *adapter, const LhModelTensor *w, const double *x, const double *dy,
          double *dx)
{
    const LhMathProduct p = product_of_adapter(adapter, w);

    lh_math_product_dx(&p, dy, w->value, dx);
    lh_model_product_dw(adapter->model, &p, x, dy, w->gradient);
    lh_model_disturb(adapter->model, dx, adapter->rows, w->rows);
}

double *
lh_adapter_in(const LhAdapter *adapter, const double *x)
{
    return adapter->a->rows > 0 ? pass_on(adapter, adapter->a, x) : NULL;
}

void
lh_adapter_out(const LhAdapter *adapter, const LhModelTensor *b, const double *low, double *y)
{
    g_autofree double *delta = NULL;

    if (adapter->a->rows == 0)
        return;
    delta = pass_on(adapter, b, low);
    for (uint64_t i = 0; i < adapter->rows * b->columns; i++)
        y[i] += delta[i];
    lh_model_disturb(adapter->model, y, adapter->rows, b->columns);
}

void
lh_adapter_out_back(const LhAdapter *adapter, const LhModelTensor *b, const double *low,
                    const double *dy, double *dlow)
{
    if (adapter->a->rows > 0)
        pass_back(adapter, b, low, dy, dlow);
}

void
lh_adapter_in_back(const LhAdapter *adapter, const double *x, const double *dlow, double *dx)
{
    if (adapter->a->rows > 0)
        pass_back(adapter, adapter->a, x, dlow, dx);
}
